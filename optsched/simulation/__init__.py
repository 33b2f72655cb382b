"""The event engine, job level: continuous time, struct-of-arrays state, compiled loops."""

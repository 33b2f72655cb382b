"""The policy contract: checks of a policy's runs on small random instances.

The registered policies pass all checks in the tests; ``optsched check-policy`` runs them on any policy.
"""

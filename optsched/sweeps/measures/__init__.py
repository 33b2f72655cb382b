"""What cells of a sweep may measure instead of metrics and objectives, one kind a file."""

"""What API nodes share."""

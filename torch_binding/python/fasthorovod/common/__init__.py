"""What does not depend on torch."""

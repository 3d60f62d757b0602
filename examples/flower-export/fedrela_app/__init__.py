"""A fedrela run as a Flower app."""

"""The client-by-class picture: who has how many samples of which class."""

"""What several tests share; worker processes import these modules too."""

"""Imbalanced digits with Flower and PyTorch."""

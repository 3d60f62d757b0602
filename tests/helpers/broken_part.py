raise RuntimeError("broken on\npurpose")

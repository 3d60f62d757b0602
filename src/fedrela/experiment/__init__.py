"""From a description of an experiment to its result: the composition root."""

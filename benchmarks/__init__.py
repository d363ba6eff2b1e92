"""Speed and memory of the command, measured from outside and given as ratios within one run."""

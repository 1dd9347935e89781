"""Where rows live. One interface of a few reductions; the solvers never see anything else."""

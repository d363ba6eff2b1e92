"""The Common Expression Language as the API server and the scheduler run it.

    lexer → parser, macros → syntax → check (expand, types) → program, operators, folds, functions
                                                           → estimate, estimates: the most it costs
                                                           → meter, steps, costs: what a run costs

``environment`` joins them; ``library`` has the functions; ``dra`` and ``terms`` are the selectors
of devices. What is not known or cannot be evaluated here is said (``Unsure``, ``NotEvaluable``),
never guessed.
"""

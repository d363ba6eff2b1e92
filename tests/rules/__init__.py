"""Cases of the rules, one folder a rule, and the tests that run them."""

"""`policysim compare --horizon`: treatment over days against the total privacy budget.

comparison   the table: each policy at each horizon and total epsilon
screen, report   what people see and keep (the figure is policysim.figures.value_over_days)
"""

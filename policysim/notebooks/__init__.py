"""What notebooks show of tables: the figure of the report above them.

comparison  Comparison: a DataFrame that draws itself
"""

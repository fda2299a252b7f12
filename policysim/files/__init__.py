"""Files that people give and get, whatever they are about.

columns_file       columns of CSV and Parquet files, read and written a batch of rows at a time
probability_table  a table of action probabilities that was made elsewhere
bad_rows           all bad rows of a file, listed: the first twenty in order, then how many more
output             folders written whole or not at all; the console: progress, JSON; values as TOML
"""

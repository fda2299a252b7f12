"""Files that people give and get, whatever they are about.

bad_rows           the error for bad data; all bad rows of a file, listed: the first twenty, then how many more
csv_format         what a user states of a table in text
dialect            how it is written: what is recognised, and what is refused
columns_file       text and Parquet, read a batch of rows at a time, as a file may exceed the memory
columns_writer     CSV and Parquet, written so
data_table         such a file, or a data frame, as a table in memory; its columns as codes, numbers or text
probability_table  a table of action probabilities that was made elsewhere
many_files         the files of a table in many files: a folder's, or a pattern's
whole_files        files written whole, of which the last says that all are there
terminal           the one door through which text goes to standard output and to standard error; a progress bar
"""

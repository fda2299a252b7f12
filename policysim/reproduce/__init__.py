"""Running a study again: what a run writes down about itself, and whether the same numbers come out of it.

manifest     what every manifest.json says besides the study: the command, and the digest of each file that was made
reading      a manifest.json read and checked
named_files  the files that a study names, copied with it under its old name
rerun        the same command on the same study, into another folder
tables       CSV files as text, and the cells in which two differ
statements   what two manifests say, and where they differ
reproduction a manifest run again and compared: what agrees and what differs
screen       that in words and as a document
"""

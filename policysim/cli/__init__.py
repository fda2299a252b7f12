"""The command line: from arguments to a report. Imports nothing heavy until a command is run: --help is immediate.

main            the entry point, and what becomes of errors
options         argparse, with refusals of one line; options that several commands have, the study that they choose, and
                what an option's text means
kinds           the kinds of report: the function that makes each, its options, and the command line of a manifest

A command is a module with its options (`add`) and what it does (`run`), such as compare_command.
"""

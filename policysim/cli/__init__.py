"""The command line: from arguments to a question. Imports nothing heavy until a command is run: --help is immediate.

main            the entry point, and what becomes of errors
options         argparse, with refusals of one line; options that several commands have, the study that they choose, and
                what an option's text means

A command is a module with its options (`add`) and the question that they ask (`run`): audit_command, choose_command,
compare_command, evaluate_command, init_command, privatize_command, reproduce_command, select_command,
sensitivity_command, simulate_command.
"""

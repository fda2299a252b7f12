"""The command line: from arguments to a question. Imports nothing heavy until a command needs it: --help is immediate.

main        the entry point, and the parser of all commands
arguments   the options of each command
options     what their text means: studies, numbers, wishes

A command is a module, imported when it is run: audit_command, choose_command, compare_command, evaluate_command,
init_command, privatize_command, reproduce_command, select_command, sensitivity_command, simulate_command; and
gallery, the page of all reports.
"""

"""The options of every command. Imports nothing heavy: --help is immediate.

parser    build_parser: all commands, in the order in which they are shown
shared    options that several commands have
studies   compare, choose, audit, simulate and sensitivity: commands on a study
logs      init and evaluate: commands on a log
tools     reproduce, privatize and select: commands on other files
"""

from policysim.parsers.parser import build_parser

__all__ = ["build_parser"]

"""Policies learned from one part of a log, and their value to the patients of the other.

trial_question   policies compared on a log: what is asked, and the answer
"""

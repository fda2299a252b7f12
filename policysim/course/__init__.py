"""Decisions over days: treatment over a whole stay, and any other process.

course_question   policies within a total privacy budget: what is asked, and the answer
"""

"""Cron jobs: a job at every moment of a schedule.

`controller` looks and writes; `due` says whether a job is due; `jobs` what is made and which of the finished go.
"""

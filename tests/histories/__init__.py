"""Histories of transactions: clients that record what they did and saw, for the program
`histories`, which checks it."""

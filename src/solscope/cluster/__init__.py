"""Kubernetes behind one narrow port. In: verbs and names. Out: objects as typed dictionaries.

Never decides anything, never changes the user's kubeconfig or current context.
"""

"""Campaigns as text, HTML and PDF. In: nouns of a campaign. Never judges."""

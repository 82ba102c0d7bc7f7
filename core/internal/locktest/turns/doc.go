package turns

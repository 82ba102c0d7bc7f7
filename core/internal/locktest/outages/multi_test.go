package outages_test

func second[A, B any](_ A, b B) B { return b }

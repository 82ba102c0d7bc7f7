package ruleset_test

// unseenBySchema names the invalid samples that are valid for the schema, with what it
// would have to know; without their numbers. It sees the values of a file, one by one, and not the text.
func unseenBySchema() map[string]string {
	const (
		twice     = "a validator sees the last of two values"
		comment   = "a comment is no value"
		alias     = "a validator sees the value that an alias or a merge stands for"
		number    = "a validator sees the number, not how it is written"
		length    = "nothing in a schema computes with times"
		elsewhere = "the profile, the defaults of the program or a lower layer may have what is missing"
		others    = "nothing in a schema compares one rule with another, or with its profile"
		program   = "the program knows"
		quotes    = "a curly quote is a letter like others"
		star      = "a star may stand anywhere for a pattern that does not know the transport's rules"
		below     = "only those who know the lower layers can compare them with the file"
	)
	return map[string]string{
		"top-level-duplicate":              twice,
		"duplicate-field":                  twice,
		"anchor-and-alias":                 alias,
		"number-octal":                     number,
		"number-fraction":                  number,
		"duration-too-long":                length,
		"duration-too-short":               length,
		"profile-unknown":                  program + " profiles that the file does not have",
		"endpoint-swallowed":               comment,
		"template-swallowed":               comment,
		"template-swallowed-after-quotes":  comment,
		"template-swallowed-elsewhere":     comment,
		"template-swallowed-and-open":      comment,
		"key-date":                         "a validator sees the date as text",
		"response-unused":                  elsewhere,
		"fallback-missing":                 elsewhere,
		"fallback-unused":                  elsewhere,
		"none-beside-rule":                 others,
		"rule-twice":                       others,
		"rule-twice-by-name":               others,
		"name-missing-on-one-of-two":       others,
		"kinds-on-one-key":                 others,
		"profile-swallowed":                comment,
		"default-strategy-without-handler": elsewhere,
		"comment-and-quotes":               comment,
		"services-without-program-name":    program + " which service it is",
		"profile-defaults":                 "the name of a profile is free",
		"quotes-curly-around-comment":      quotes,
		"quotes-curly-open":                quotes,
		"endpoint-any-method":              "any word in capitals is a method",
		"endpoint-two-stars":               "a second star looks like the name of Gin's wildcard",
		"none-over-program":                below,
		"none-over-proto":                  below,
		"name-over-proto":                  below,
		"name-over-program":                below,
		"name-missing-over-program":        below,
		"unused-because-of-defaults":       others,
		"services-nearly-this-program":     program + " how it is called",
		"endpoint-star-inside-of-a-name":   star,
		"kind-of-a-profile":                others,
		"permits":                          elsewhere,
		"sizes-of-a-semaphore":             others,
	}
}

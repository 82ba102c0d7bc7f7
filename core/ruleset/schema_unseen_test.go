package ruleset_test

// unseenBySchema names the invalid samples that are valid for the schema, with what it
// would have to know. It sees the values of a file, one by one, and not the text.
func unseenBySchema() map[string]string {
	const (
		twice     = "a validator sees the last of two values"
		comment   = "a comment is no value"
		alias     = "a validator sees the value that an alias or a merge stands for"
		tag       = "a validator sees the value without its tag"
		number    = "a validator sees the number, not how it is written"
		length    = "nothing in a schema computes with times"
		elsewhere = "the profile, the defaults of the program or a lower layer may have what is missing"
		others    = "nothing in a schema compares one rule with another"
		program   = "the program knows"
	)
	return map[string]string{
		"023-top-level-duplicate":              twice,
		"032-duplicate-field":                  twice,
		"034-merge-key":                        alias,
		"035-anchor-and-alias":                 alias,
		"038-tags":                             tag,
		"050-number-octal":                     number,
		"051-number-hex":                       number,
		"052-number-underscore":                number,
		"053-number-exponent":                  number,
		"054-number-fraction":                  number,
		"072-duration-too-long":                length,
		"073-duration-too-short":               length,
		"084-profile-unknown":                  program + " profiles that the file does not have",
		"098-endpoint-swallowed":               comment,
		"103-template-swallowed":               comment,
		"105-template-swallowed-after-quotes":  comment,
		"112-template-swallowed-elsewhere":     comment,
		"121-condition-with-exclamation-mark":  tag,
		"156-response-unused":                  elsewhere,
		"157-fallback-missing":                 elsewhere,
		"158-fallback-unused":                  elsewhere,
		"161-none-beside-rule":                 others,
		"162-rule-twice":                       others,
		"163-rule-twice-by-name":               others,
		"164-name-missing-on-one-of-two":       others,
		"169-profile-swallowed":                comment,
		"170-default-strategy-without-handler": elsewhere,
		"175-services-without-program-name":    program + " which service it is",
	}
}

package keyexpr

// reservedNames are words of the expression language.
var reservedNames = map[string]bool{
	"true": true, "false": true, "nil": true, "not": true, "in": false, "or": true, "and": true,
	"matches": true, "contains": true, "startsWith": true, "endsWith": true, "let": true,
	"if": true, "else": true,
}

func isIdentifier(name string) bool {
	for i, r := range name {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

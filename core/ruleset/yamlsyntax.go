package ruleset

import (
	"errors"

	"go.yaml.in/yaml/v4"
)

// reportSyntax reports what the parser says.
func (f *fileReader) reportSyntax(err error) {
	at, message := f.at(1, 1), err.Error()
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		at, message = f.at(e.Mark.Line, e.Mark.Column), e.Message
	}
	f.report(at, "", message)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/interlock-go/interlock/examples/declared/orders"
)

// mistake is a change of locks.yaml with which the service must not start or reload,
// and a text that its message must contain.
type mistake struct {
	what             string
	old, replacement string
	says             string
}

func startupMistakes() []mistake {
	return []mistake{
		{
			"a field of a message",
			"  - grpc: /declared.v1.Orders/Pay\n", "  - grpc: /declared.v1.Orders/Pay\n    key: \"order:#{req.ordr_id}\"\n",
			"order_id",
		},
		{"a path parameter", "invoice:#{path.order}", "invoice:#{path.odrer}", "there is order"},
		{"a strategy", "on_busy: null_response", "on_busy: null_respons", `"null_response"`},
	}
}

// startWithTypos opens the service with one mistake after another.
func startWithTypos(_ context.Context, d *demo) (string, error) {
	var wrong []error
	refused := 0
	for _, m := range startupMistakes() {
		text, err := d.file.with(m.old, m.replacement)
		if err != nil {
			return "", err
		}
		message, err := d.openWith(text)
		if err != nil {
			return "", err
		}
		d.out.linef("a typo in %s:\n%s\n", m.what, message)
		if err := m.check(message); err != nil {
			wrong = append(wrong, err)
			continue
		}
		refused++
	}
	return fmt.Sprintf("%d refused", refused), errors.Join(wrong...)
}

// openWith opens a second service with a rule file. message is the reason why it does not start.
func (d *demo) openWith(text string) (message string, err error) {
	file, err := newRuleFile(text, nil)
	if err != nil {
		return "", err
	}
	defer file.remove()
	service, err := orders.Open(d.config(file.path))
	if err == nil {
		service.Close()
		return "", errors.New("the service has started")
	}
	return strings.ReplaceAll(err.Error(), file.dir+string(os.PathSeparator), ""), nil
}

var hasLine = regexp.MustCompile(`locks\.yaml:\d+:\d+: `)

// check returns an error if a message has no place of the mistake, or does not contain
// the correct name.
func (m mistake) check(message string) error {
	if !hasLine.MatchString(message) || !strings.Contains(message, m.says) {
		return fmt.Errorf("a typo in %s: the message has no line or no %q:\n%s", m.what, m.says, message)
	}
	return nil
}

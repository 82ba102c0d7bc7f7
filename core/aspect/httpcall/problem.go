package httpcall

import (
	"encoding/json"

	"github.com/interlock-go/interlock/core/aspect"
)

// problem is a problem document of RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// WriteProblem answers with an RFC 9457 problem document. type and title are those of
// the cause (see package failpolicy), status that of the refusal, detail the rule's
// Message if it has one. Where the program is at fault, type is "about:blank".
func WriteProblem(w Writer, refusal *aspect.RefusedError) {
	cause := refusal.Cause
	if refusal.Misconfigured {
		cause = "" // the request is in order
	}
	doc := problem{Type: cause.Type(), Title: cause.Title(), Status: refusal.Status.HTTP}
	if refusal.Message != doc.Title {
		doc.Detail = refusal.Message
	}
	body, err := json.Marshal(doc)
	if err != nil { // strings and a number always encode
		panic(err)
	}
	respond(w, doc.Status, "application/problem+json", body)
}

package httpvars

import (
	"bytes"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/keyexpr"
)

// decodeBody decodes a JSON body, into the given type unless it is nil. It returns nil if the
// request has no body.
func decodeBody(p *payload, typ reflect.Type) (any, error) {
	content, err := p.ofMediaType(isJSON, "application/json")
	if err != nil || len(content) == 0 {
		return nil, err
	}
	value, err := keyexpr.DecodeJSONAs(content, typ)
	if err != nil {
		return nil, badBody("needs a body of JSON", err)
	}
	return value, nil
}

func isJSON(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}

const (
	urlencodedForm = "application/x-www-form-urlencoded"
	multipartForm  = "multipart/form-data"
)

// formMethods are the methods under which net/http parses a urlencoded body.
var formMethods = map[string]bool{http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true} //nolint:gochecknoglobals // a table that is only read

func isForm(mediaType string) bool { return mediaType == urlencodedForm || mediaType == multipartForm }

// decodeForm returns the values that a handler finds in PostForm after parsing the form: the
// values of a urlencoded body under POST, PUT and PATCH only, the values of a multipart body under
// any method, and the values that a middleware parsed earlier.
func decodeForm(p *payload) (url.Values, error) {
	r := p.request
	name, params := mediaType(r)
	if r.MultipartForm != nil || name == urlencodedForm && (r.PostForm != nil || !formMethods[r.Method]) {
		return r.PostForm, nil
	}
	content, err := p.ofMediaType(isForm, urlencodedForm+" or "+multipartForm)
	switch {
	case err != nil || len(content) == 0:
		return r.PostForm, err
	case name == multipartForm: // the test is not whether there is a boundary, because a client may add one to any type
		return decodeMultipart(p, content, params["boundary"])
	}
	form, err := url.ParseQuery(string(content))
	if err != nil {
		return nil, badBody("needs a well-formed form", err)
	}
	return form, nil
}

// decodeMultipart adds the values of a multipart body to the values that were parsed earlier.
func decodeMultipart(p *payload, content []byte, boundary string) (url.Values, error) {
	if boundary == "" {
		return nil, badBody("needs a multipart form with a boundary", nil)
	}
	form, err := multipart.NewReader(bytes.NewReader(content), boundary).ReadForm(p.limit)
	if err != nil {
		return nil, badBody("needs a well-formed multipart form", err)
	}
	values := url.Values(form.Value)
	if before := p.request.PostForm; len(before) > 0 {
		values = maps.Clone(before)
		for name, more := range form.Value {
			values[name] = append(slices.Clip(values[name]), more...)
		}
	}
	return values, form.RemoveAll()
}

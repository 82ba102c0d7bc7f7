package httpvars

import (
	"bytes"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
)

const (
	urlencodedForm = "application/x-www-form-urlencoded"
	multipartForm  = "multipart/form-data"
)

// parsed are the methods under which net/http parses a urlencoded body.
var parsed = map[string]bool{http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true} //nolint:gochecknoglobals // a table that is only read

func isForm(mediaType string) bool { return mediaType == urlencodedForm || mediaType == multipartForm }

// parseForm is what a handler finds in PostForm when it has parsed the form: of a
// urlencoded body under POST, PUT and PATCH only, of a multipart one under any method,
// and what a middleware has parsed before.
func (q *Request) parseForm() (url.Values, error) {
	r := q.request
	name, params := q.media()
	if r.MultipartForm != nil || name == urlencodedForm && (r.PostForm != nil || !parsed[r.Method]) {
		return r.PostForm, nil
	}
	content, err := q.content(isForm, urlencodedForm+" or "+multipartForm)
	switch {
	case err != nil || len(content) == 0:
		return r.PostForm, err
	case name == multipartForm: // the boundary does not tell: any type may have one
		return q.parseMultipart(content, params["boundary"])
	}
	form, err := url.ParseQuery(string(content))
	if err != nil {
		return nil, badBody("needs a well-formed form", err)
	}
	return form, nil
}

// parseMultipart adds the values of a multipart body to what was parsed before.
func (q *Request) parseMultipart(content []byte, boundary string) (url.Values, error) {
	if boundary == "" {
		return nil, badBody("needs a multipart form with a boundary", nil)
	}
	form, err := multipart.NewReader(bytes.NewReader(content), boundary).ReadForm(q.variables.maxBody)
	if err != nil {
		return nil, badBody("needs a well-formed multipart form", err)
	}
	values := url.Values(form.Value)
	if before := q.request.PostForm; len(before) > 0 {
		values = maps.Clone(before)
		for name, more := range form.Value {
			values[name] = append(slices.Clip(values[name]), more...)
		}
	}
	return values, form.RemoveAll()
}

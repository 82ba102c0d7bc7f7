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

func isForm(mediaType string) bool { return mediaType == urlencodedForm || mediaType == multipartForm }

// parseForm is what a handler finds in PostForm when it has parsed the form: of a
// urlencoded body under POST, PUT and PATCH only, of a multipart one under any method,
// and what a middleware has parsed before.
func (q *Request) parseForm() (url.Values, error) {
	r := q.request
	if r.MultipartForm != nil || q.parsedOrNoForm() {
		return r.PostForm, nil
	}
	content, typ, err := q.content(isForm, urlencodedForm+" or "+multipartForm)
	switch {
	case err != nil || len(content) == 0:
		return r.PostForm, err
	case typ.name == multipartForm: // the boundary does not tell: any type may have one
		return q.parseMultipart(content, typ.params["boundary"])
	}
	form, err := url.ParseQuery(string(content))
	if err != nil {
		return nil, badBody("needs a well-formed form", err)
	}
	return form, nil
}

// parsedOrNoForm reports whether the body is a urlencoded one that the handler will
// not parse: it was parsed, or has a method for which net/http does not.
func (q *Request) parsedOrNoForm() bool {
	r := q.request
	typ, err := q.media()
	if err != nil || typ.name != urlencodedForm {
		return false
	}
	return r.PostForm != nil || r.Method != http.MethodPost && r.Method != http.MethodPut && r.Method != http.MethodPatch
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

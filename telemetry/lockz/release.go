package lockz

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core"
)

// releaseTimeout is how long a release by force may take.
const releaseTimeout = 5 * time.Second

// maxForm is the size of a form with one ticket of a long key.
const maxForm = 1 << 20

// allows reports whether the request comes from one who may release locks.
func (p *Page) allows(r *http.Request) bool {
	return p.cfg.authorize != nil && p.cfg.authorize(r) == nil
}

// cookieName is the cookie that proves that a button is pressed in the browser that showed it.
const cookieName = "interlock-locks"

// cookieOf returns the cookie of a browser, and sets one if it has none. Other sites cannot make the
// browser send it, and buttons that another browser showed do not fit it.
func cookieOf(w http.ResponseWriter, r *http.Request) string {
	if c, err := r.Cookie(cookieName); err == nil && c.Value != "" {
		return c.Value
	}
	value := rand.Text()
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: value, HttpOnly: true, SameSite: http.SameSiteStrictMode}) //nolint:gosec // the page may be served over plain HTTP
	return value
}

// fromHere reports whether a button was pressed on this page, and not on another site. A browser says
// so in Sec-Fetch-Site or, over plain HTTP, in Origin. If a proxy has rewritten Host, Origin cannot be
// compared with it; then the browser has to send the cookie that the ticket names.
func (p *Page) fromHere(r *http.Request, t *ticket) bool {
	if p.crossOrigin.Check(r) == nil {
		return true
	}
	c, err := r.Cookie(cookieName)
	return err == nil && r.Header.Get("Sec-Fetch-Site") == "" && t.Cookie != "" && c.Value == t.Cookie
}

// button is what a template needs for one.
type button struct {
	Ticket, View string
	Lock         lockRow
	Holders      []buttonHolder // they lose the lock
}

type buttonHolder struct {
	Field, Rule string
	Held        float64 // 0: not known
}

// buttons makes a button for each hold that is listed and whose client is open.
func (v *view) buttons(cookie string) []*button {
	list := make([]*button, len(v.held))
	for i, h := range v.held {
		if client := v.page.clientOf(clientID(h.field)); client != nil {
			shown := &v.Holds[i]
			b := button{View: "?release=1", Lock: shown.lockRow, Holders: []buttonHolder{{shown.Holder, shown.Rule, shown.Held}}}
			list[i] = v.page.sealed(b, client, h.key, []string{h.field}, []time.Time{h.acquired}, cookie)
		}
	}
	return list
}

// sealed returns a button with its ticket, or nil if no ticket can be made.
func (p *Page) sealed(b button, client *core.Client, key string, fields []string, since []time.Time, cookie string) *button {
	t := ticket{Client: client.ID(), Key: []byte(key), Since: since, Cookie: cookie, Made: time.Now()}
	for _, f := range fields {
		t.Fields = append(t.Fields, []byte(f))
	}
	var err error
	if b.Ticket, err = p.tickets.issue(t); err != nil {
		return nil
	}
	return &b
}

// clientID is the client that a holder field belongs to.
func clientID(field string) string { return core.Holder{Field: field}.ClientID() }

// release takes a lock from the holders of a ticket, for a request that comes from this page and is allowed to.
func (p *Page) release(w http.ResponseWriter, r *http.Request) {
	if !p.allows(r) {
		p.tell(w, r, http.StatusForbidden, "Not allowed", "You may not release locks here.")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	t, valid := p.tickets.open(r.PostFormValue("ticket"), time.Now())
	if !p.fromHere(r, &t) {
		p.tell(w, r, http.StatusForbidden, "Not from this page", "Locks are released by the buttons of this page only, not from other sites. Load the page again, and let it keep its cookie.")
		return
	}
	client := p.clientOf(t.Client)
	if !valid || client == nil {
		p.tell(w, r, http.StatusConflict, "Nothing was released", "This button is too old, or not of this process: load the page again.")
		return
	}
	operator := printable(p.cfg.operator(r), maxName) // before anything is done: it may panic
	ctx, cancel := context.WithTimeout(r.Context(), releaseTimeout)
	defer cancel()
	before, err := p.evict(ctx, client, &t)
	if len(before.Holders) == 0 && (err == nil || errors.Is(err, core.ErrNotHeld)) {
		backToView(w, r, noticeFree)
		return
	}
	p.logRelease(r, operator, string(t.Key), &before, err)
	p.answerRelease(w, r, &before, err)
}

// evict takes the lock from the holders of a ticket that have it still. A hold of this process may have
// passed it on since: the next hold has the same field.
func (p *Page) evict(ctx context.Context, client *core.Client, t *ticket) (core.LockEntry, error) {
	var fields []string
	for i, f := range t.Fields {
		if h := p.table.ofField(string(t.Key), string(f)); h == nil || h.acquired.Equal(t.Since[i]) {
			fields = append(fields, string(f))
		}
	}
	if len(fields) == 0 {
		e, err := client.Inspect(ctx, string(t.Key))
		return e, cmp.Or(err, core.ErrNotHeld)
	}
	return client.Evict(ctx, string(t.Key), fields...)
}

// answerRelease leads back to the view that the button was on, or says why nothing was done.
func (p *Page) answerRelease(w http.ResponseWriter, r *http.Request, before *core.LockEntry, err error) {
	switch {
	case errors.Is(err, core.ErrNotHeld):
		p.tell(w, r, http.StatusConflict, "Nothing was released", "The lock has another holder by now. Load the page again.")
	case errors.Is(err, core.ErrInvalid):
		p.tell(w, r, http.StatusConflict, "Nothing was released", "The key is not a lock that somebody holds, or not any more.")
	case err != nil:
		p.tell(w, r, http.StatusBadGateway, "Not known whether it was released", "Redis did not confirm it. Load the page again to see whether the lock is still held.")
	case before.HolderCount > len(before.Holders):
		backToView(w, r, noticeOthers)
	default:
		backToView(w, r, noticeReleased)
	}
}

// backToView shows the view that the button was on again, with what has become of it.
func backToView(w http.ResponseWriter, r *http.Request, notice string) {
	query := "?"
	if r.URL.Query().Has("fleet") {
		query = "?fleet=1&"
	}
	w.Header().Set("Location", query+"notice="+notice) // relative to wherever the page is mounted
	w.WriteHeader(http.StatusSeeOther)
}

// logRelease keeps and logs who released what, and who lost it.
func (p *Page) logRelease(r *http.Request, operator, key string, before *core.LockEntry, err error) {
	var holders []string
	for _, h := range before.Holders {
		holders = append(holders, printable(h.Field, maxName))
	}
	if err == nil {
		p.incidents.add(whatReleased, event{
			at: time.Now(), what: whatReleased, rule: rule{p.ruleOf(key, before.Holders[0].Field), before.Kind}, key: key,
			holder: before.Holders[0].Field, trace: traceOf(r.Context()),
		})
	}
	attrs := []slog.Attr{
		slog.String("operator", operator),
		p.keyAttr("key", "key_hash", key), slog.String("kind", string(before.Kind)),
	}
	who := strings.Join(holders, " ")
	if err != nil {
		attrs = append(attrs, slog.String("held_by", who), slog.String("error", core.ErrorText(err)))
		p.cfg.logger.LogAttrs(r.Context(), slog.LevelError, "lock not released by force", attrs...)
		return
	}
	p.cfg.logger.LogAttrs(r.Context(), slog.LevelWarn, "lock released by force", append(attrs, slog.String("lost_by", who))...)
}

// ruleOf is the rule of a hold, if it is one of this process.
func (p *Page) ruleOf(key, field string) string {
	if h := p.table.ofField(key, field); h != nil {
		return h.rule.name
	}
	return ruleNone
}

// ticketLasts is for how long a button of the page can be pressed.
const ticketLasts = 15 * time.Minute

// ticket is what a button of the page releases: a key, from the holders that the operator has seen.
type ticket struct {
	Client string      `json:"c"` // through which it is released
	Key    []byte      `json:"k"` // not a string, which JSON would make UTF-8
	Fields [][]byte    `json:"f"`
	Since  []time.Time `json:"h"` // when the holders acquired it, in the order of Fields; zero: not known here
	Cookie string      `json:"s"` // of the browser that it was shown to
	Made   time.Time   `json:"t"`
}

// tickets seals them: a page that shows no key hides it in its buttons too, and who has not
// been shown the page has none.
type tickets struct{ seal cipher.AEAD }

func newTickets() (*tickets, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("cipher of tickets: %w", err)
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("cipher of tickets: %w", err)
	}
	return &tickets{seal}, nil
}

func (s *tickets) issue(t ticket) (string, error) {
	plain, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("ticket: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(s.seal.Seal(nil, nil, plain, nil)), nil //nolint:gosec // the cipher makes a nonce by itself
}

// open reports whether a ticket is of this process and not too old.
func (s *tickets) open(sealed string, now time.Time) (t ticket, valid bool) {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err == nil {
		raw, err = s.seal.Open(nil, nil, raw, nil)
	}
	if err == nil {
		err = json.Unmarshal(raw, &t)
	}
	return t, err == nil && now.Sub(t.Made) <= ticketLasts
}

package main

import (
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPicture_ShowsTheSteps checks that README.md shows the current steps: table.svg is the picture of a run in which every
// step succeeded.
func TestPicture_ShowsTheSteps(t *testing.T) {
	t.Parallel()
	const advice = "go -C examples run ./quickstart -picture quickstart/table.svg"
	picture, err := os.ReadFile("table.svg")
	if err != nil {
		t.Fatal(err)
	}
	cells := cellsOf(t, string(picture))
	all := steps()
	if len(cells) != len(columns)*(len(all)+1) {
		t.Fatalf("table.svg has %d cells, want %d for %d steps and the head: run %s", len(cells), len(columns)*(len(all)+1), len(all), advice)
	}
	results := make([]result, len(all))
	for i, s := range all {
		results[i] = result{step: s, seen: cells[len(columns)*(i+1)+2]}
	}
	if drawTable(results) != string(picture) {
		t.Errorf("table.svg does not show the steps with their expected results and yes, or is drawn differently: run %s", advice)
	}
}

func TestPicture_FailedStep(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "table.svg")
	failed := result{step: step{name: "a<b", expected: "dry"}, seen: "wet & cold", err: errors.New("it rains")}
	if err := savePicture(file, []result{failed}); err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(cellsOf(t, string(picture)), "|")
	if want := "step|expected|seen|ok|a<b|dry|wet & cold|NO"; got != want {
		t.Errorf("the picture shows %s, want %s", got, want)
	}
	if !strings.Contains(string(picture), `class="no">NO<`) {
		t.Errorf("the picture does not mark the failed step:\n%s", picture)
	}
}

// cellsOf returns the texts of a picture.
func cellsOf(t *testing.T, picture string) []string {
	t.Helper()
	var svg struct {
		Texts []string `xml:"text"`
	}
	if err := xml.Unmarshal([]byte(picture), &svg); err != nil {
		t.Fatal(err)
	}
	return svg.Texts
}

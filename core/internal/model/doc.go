// Package model is a test kit.
package model

package auth

import (
	"fmt"
	"io"
	"log/slog"
)

// What carries a secret in the clear prints as stars, whatever prints it.

// Format hides the key.
func (Config) Format(f fmt.State, _ rune) { star(f) }

// LogValue hides the key.
func (Config) LogValue() slog.Value { return slog.StringValue(hidden) }

// Format hides the token.
func (Token) Format(f fmt.State, _ rune) { star(f) }

// LogValue hides the token.
func (Token) LogValue() slog.Value { return slog.StringValue(hidden) }

// Format hides the secret.
func (NewApp) Format(f fmt.State, _ rune) { star(f) }

// LogValue hides the secret.
func (NewApp) LogValue() slog.Value { return slog.StringValue(hidden) }

// Format hides the key.
func (NewKey) Format(f fmt.State, _ rune) { star(f) }

// LogValue hides the key.
func (NewKey) LogValue() slog.Value { return slog.StringValue(hidden) }

func star(f fmt.State) { _, _ = io.WriteString(f, hidden) }

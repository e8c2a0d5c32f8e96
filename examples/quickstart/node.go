package main

import (
	"context"
	"errors"

	"os/exec"
)

func startAnvil(context.Context) (world, error) { return nil, errors.New("x") }
func dialNode(context.Context, string, *exec.Cmd) (world, error) { return nil, errors.New("x") }

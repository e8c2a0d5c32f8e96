// Package shop tests what purse does not.
package shop

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/internal/overlay"
)

// kind is what is wrong with a mutant.
type kind string

const (
	comparison kind = "comparison" // < for <=, == for !=
	arithmetic kind = "arithmetic" // + for -, ++ for --, a sign that is missing
	boolean    kind = "boolean"    // && for ||, a condition that is turned round
	dropped    kind = "dropped"    // a statement that is missing
	unguarded  kind = "unguarded"  // an `if err != nil { return … }` that is missing
	ignored    kind = "ignored"    // an error of a call that is taken for none
	swapped    kind = "swapped"    // two values of one type, each in the place of the other
)

// mutant is the package with one small thing wrong in it.
type mutant struct {
	overlay.Edit
	kind          kind
	line          int
	function      string // in which it is, "" outside of all; "f (2)" is the second in f with the same words
	before, after string // the line, its spaces reduced to one each
}

func (m *mutant) place() string { return fmt.Sprintf("%s:%d", m.File, m.line) }

// instead are the operators that take the place of one.
var instead = map[token.Token][]struct {
	kind kind
	by   string
}{
	token.LSS:        {{comparison, "<="}, {comparison, ">="}},
	token.LEQ:        {{comparison, "<"}, {comparison, ">"}},
	token.GTR:        {{comparison, ">="}, {comparison, "<="}},
	token.GEQ:        {{comparison, ">"}, {comparison, "<"}},
	token.EQL:        {{comparison, "!="}},
	token.NEQ:        {{comparison, "=="}},
	token.ADD:        {{arithmetic, "-"}},
	token.SUB:        {{arithmetic, "+"}},
	token.MUL:        {{arithmetic, "/"}},
	token.QUO:        {{arithmetic, "*"}},
	token.REM:        {{arithmetic, "*"}},
	token.ADD_ASSIGN: {{arithmetic, "-="}},
	token.SUB_ASSIGN: {{arithmetic, "+="}},
	token.MUL_ASSIGN: {{arithmetic, "/="}},
	token.QUO_ASSIGN: {{arithmetic, "*="}},
	token.INC:        {{arithmetic, "--"}},
	token.DEC:        {{arithmetic, "++"}},
	token.LAND:       {{boolean, "||"}},
	token.LOR:        {{boolean, "&&"}},
}

// symmetric are functions that make the same of their values in any order.
var symmetric = map[string]bool{
	"min": true, "max": true, "math/bits.Add64": true, "math/bits.Mul64": true,
	"(*math/big.Int).Add": true, "(*math/big.Int).Mul": true, "bytes.Equal": true, "slices.Equal": true,
	"crypto/subtle.ConstantTimeCompare": true, "crypto/hmac.Equal": true,
}

// maker makes the mutants of one file.
type maker struct {
	*source
	file     int
	function string
	out      []mutant
}

// mutants are all that can be made of the package, in the order of its text. Some of
// them do not compile.
func (s *source) mutants() []mutant {
	var all []mutant
	alike := map[string]int{}
	for i, f := range s.files {
		m := maker{source: s, file: i}
		for _, d := range f.Decls {
			m.function = ""
			if f, ok := d.(*ast.FuncDecl); ok {
				m.function = f.Name.Name
			}
			ast.Inspect(d, m.visit)
		}
		slices.SortStableFunc(m.out, func(a, b mutant) int {
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.End, b.End), cmp.Compare(a.kind, b.kind), cmp.Compare(a.New, b.New))
		})
		for _, one := range m.out {
			id := one.identity()
			if alike[id]++; alike[id] > 1 {
				one.function += fmt.Sprintf(" (%d)", alike[id])
			}
			all = append(all, one)
		}
	}
	return all
}

// draw takes n of the mutants that compile, or all where there are fewer. The seed
// decides which: the same seed takes the same ones. Their ids number them.
func draw(all []mutant, n int, seed uint64, compiles func(overlay.Edit) bool) []mutant {
	var out []mutant
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(all)) {
		if len(out) == n {
			break
		}
		if m := all[i]; compiles(m.Edit) {
			m.ID = fmt.Sprint(len(out) + 1)
			out = append(out, m)
		}
	}
	return out
}

func (m *maker) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		m.operator(n.Op, n.OpPos)
	case *ast.IncDecStmt:
		m.operator(n.Tok, n.TokPos)
	case *ast.AssignStmt:
		m.operator(n.Tok, n.TokPos)
	case *ast.UnaryExpr:
		switch n.Op {
		case token.NOT:
			m.edit(boolean, n.Pos(), n.X.Pos(), "")
		case token.SUB:
			m.edit(arithmetic, n.Pos(), n.X.Pos(), "")
		}
	case *ast.IfStmt:
		m.turn(n.Cond)
		m.guard(n)
		if init, ok := n.Init.(*ast.AssignStmt); ok {
			m.ignore(init, n.Cond)
		}
	case *ast.ForStmt:
		m.turn(n.Cond)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, c := range n.Body.List {
				for _, cond := range c.(*ast.CaseClause).List {
					m.turn(cond)
				}
			}
		}
	case *ast.BlockStmt:
		m.statements(n.List)
	case *ast.CaseClause:
		m.statements(n.Body)
	case *ast.CommClause:
		m.statements(n.Body)
	case *ast.CompositeLit:
		m.swapFields(n)
	case *ast.CallExpr:
		if m.words(n) {
			return false
		}
		if !symmetric[m.callee(n)] {
			m.swap(n.Args)
		}
	}
	return true
}

// operator puts others in the place of one.
func (m *maker) operator(op token.Token, at token.Pos) {
	for _, other := range instead[op] {
		m.edit(other.kind, at, at+token.Pos(len(op.String())), other.by)
	}
}

// turn turns a condition round. A comparison and a negation have mutants of their own
// that do so.
func (m *maker) turn(cond ast.Expr) {
	switch c := cond.(type) {
	case nil:
		return
	case *ast.BinaryExpr:
		if c.Op != token.LAND && c.Op != token.LOR {
			return
		}
	case *ast.UnaryExpr:
		return
	}
	m.edit(boolean, cond.Pos(), cond.End(), "!("+m.text(cond.Pos(), cond.End())+")")
}

// guard takes an `if err != nil { return … }` away.
func (m *maker) guard(n *ast.IfStmt) {
	if n.Init != nil || n.Else != nil || len(n.Body.List) == 0 {
		return
	}
	_, returns := n.Body.List[len(n.Body.List)-1].(*ast.ReturnStmt)
	c, ok := n.Cond.(*ast.BinaryExpr)
	if returns && ok && c.Op == token.NEQ && m.isError(c.X) && m.isNil(c.Y) {
		m.drop(unguarded, n)
	}
}

// ignore lets the error that an assignment before the condition sets count for none.
func (m *maker) ignore(init *ast.AssignStmt, cond ast.Expr) {
	set := m.sets(init)
	if set == nil {
		return
	}
	ast.Inspect(cond, func(n ast.Node) bool {
		c, ok := n.(*ast.BinaryExpr)
		if !ok || !m.isNil(c.Y) {
			return true
		}
		if e, ok := c.X.(*ast.Ident); ok && e.Name == set.Name {
			switch text := m.text(c.Pos(), c.End()); c.Op {
			case token.NEQ:
				m.edit(ignored, c.Pos(), c.End(), text+" && false")
			case token.EQL:
				m.edit(ignored, c.Pos(), c.End(), "("+text+" || true)")
			}
		}
		return true
	})
}

// sets is the error that an assignment takes from a call; nil where there is none.
func (m *maker) sets(a *ast.AssignStmt) *ast.Ident {
	if a.Tok != token.DEFINE && a.Tok != token.ASSIGN || len(a.Rhs) != 1 {
		return nil
	}
	if call, ok := a.Rhs[0].(*ast.CallExpr); !ok || m.words(call) {
		return nil
	}
	for _, l := range a.Lhs {
		if e, ok := l.(*ast.Ident); ok && e.Name != "_" && m.isError(e) {
			return e
		}
	}
	return nil
}

// statements takes each of them away, and lets the errors that they set count for none.
func (m *maker) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); !ok || !m.words(call) {
				m.drop(dropped, s)
			}
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				m.drop(dropped, s)
			}
			if e := m.sets(s); e != nil {
				m.edit(ignored, s.Pos(), s.End(), m.text(s.Pos(), s.End())+"; "+e.Name+" = nil")
			}
		case *ast.IncDecStmt, *ast.SendStmt:
			m.drop(dropped, s)
		case *ast.BranchStmt:
			if s.Tok == token.CONTINUE {
				m.drop(dropped, s)
			}
		}
	}
}

// drop takes a statement away. Its local variables stay in use, as the compiler asks.
func (m *maker) drop(k kind, s ast.Stmt) {
	var used []string
	ast.Inspect(s, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			v, ok := m.info.Uses[id].(*types.Var)
			inside := ok && s.Pos() <= v.Pos() && v.Pos() < s.End()
			if ok && !inside && !v.IsField() && v.Parent() != v.Pkg().Scope() && !slices.Contains(used, v.Name()) {
				used = append(used, v.Name())
			}
		}
		return true
	})
	use := ""
	if len(used) > 0 {
		use = strings.TrimSuffix(strings.Repeat("_, ", len(used)), ", ") + " = " + strings.Join(used, ", ")
	}
	m.show(k, s.Pos(), s.End(), use, "")
}

// swapFields swaps the values of fields of a struct.
func (m *maker) swapFields(n *ast.CompositeLit) {
	if t := m.info.TypeOf(n); t == nil {
		return
	} else if _, ok := t.Underlying().(*types.Struct); !ok {
		return
	}
	var values []ast.Expr
	for _, v := range n.Elts {
		if keyed, ok := v.(*ast.KeyValueExpr); ok {
			v = keyed.Value
		}
		values = append(values, v)
	}
	m.swap(values)
}

// swap swaps each value with the next one of the same type.
func (m *maker) swap(values []ast.Expr) {
	for i, a := range values {
		for _, b := range values[i+1:] {
			t := m.info.TypeOf(a)
			if t == nil || t == types.Typ[types.UntypedNil] || !types.Identical(t, m.info.TypeOf(b)) {
				continue
			}
			one, two := m.text(a.Pos(), a.End()), m.text(b.Pos(), b.End())
			if one != two {
				m.edit(swapped, a.Pos(), b.End(), two+m.text(a.End(), b.Pos())+one)
			}
			break
		}
	}
}

// words says whether a call makes words for people, in a log or in an error: the
// library promises nothing of how they are put, so nothing in them is mutated.
func (m *maker) words(call *ast.CallExpr) bool {
	name := m.callee(call)
	return strings.Contains(name, "log/slog.") || name == "fmt.Errorf" || name == "errors.New" || m.formats(call)
}

// formats says whether a call has a format and what to put into it last.
func (m *maker) formats(call *ast.CallExpr) bool {
	f, ok := m.info.TypeOf(call.Fun).(*types.Signature)
	return ok && f.Variadic() && f.Params().Len() > 1 && f.Params().At(f.Params().Len()-2).Name() == "format"
}

// callee is the full name of what is called, where it is a function, a method or built in.
func (m *maker) callee(call *ast.CallExpr) string {
	id, ok := call.Fun.(*ast.Ident)
	if s, is := call.Fun.(*ast.SelectorExpr); is {
		id, ok = s.Sel, true
	}
	if !ok {
		return ""
	}
	switch f := m.info.Uses[id].(type) {
	case *types.Func:
		return f.FullName()
	case *types.Builtin:
		return f.Name()
	}
	return ""
}

func (m *maker) isError(e ast.Expr) bool {
	t := m.info.TypeOf(e)
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

func (m *maker) isNil(e ast.Expr) bool { return m.info.Types[e].IsNil() }

func (m *maker) offset(p token.Pos) int { return m.set.Position(p).Offset }

func (m *maker) text(from, to token.Pos) string {
	return string(m.texts[m.file][m.offset(from):m.offset(to)])
}

func (m *maker) edit(k kind, from, to token.Pos, by string) { m.show(k, from, to, by, by) }

// longest is how much of a line is shown.
const longest = 140

// show makes a mutant whose changed line is shown with other words than it is made of.
func (m *maker) show(k kind, from, to token.Pos, by, shown string) {
	e := overlay.Edit{File: m.names[m.file], At: m.offset(from), End: m.offset(to), New: by}
	text := string(m.texts[m.file])
	begin := strings.LastIndexByte(text[:e.At], '\n') + 1
	end := len(text)
	if n := strings.IndexByte(text[e.End:], '\n'); n >= 0 {
		end = e.End + n
	}
	before, after := tidy(text[begin:end]), tidy(text[begin:e.At]+shown+text[e.End:end])
	if len(before) > longest { // of a long line what changes is shown
		before, after = tidy(text[e.At:e.End]), tidy(shown)
	}
	m.out = append(m.out, mutant{Edit: e, kind: k, line: m.set.Position(from).Line, function: m.function, before: cut(before), after: cut(after)})
}

func tidy(s string) string { return strings.Join(strings.Fields(s), " ") }

func cut(s string) string {
	if r := []rune(s); len(r) > longest {
		return string(r[:longest]) + " …"
	}
	return s
}

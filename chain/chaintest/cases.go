package chaintest

func cases() []testCase { return nil }

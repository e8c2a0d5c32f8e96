package fsm

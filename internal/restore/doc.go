// Package restore is the steps after a store was put back to an older moment. Such a store
// knows less than the chains do. What came in is found again, as the blocks are read again.
// What was sent since looks unpaid.
//
// It promises:
//   - Nothing is paid twice: all is halted from Begin to End, and what our keys have sent
//     unknown to the store is found in the chains' blocks and booked once.
//   - No address that was shown since is shown again, for as many addresses as Withhold was given.
//   - Each step is recorded with who took it and why, and may be taken again after a crash. A
//     dry run checks and writes nothing.
//   - What a program cannot know is not guessed: it is listed for a person.
package restore

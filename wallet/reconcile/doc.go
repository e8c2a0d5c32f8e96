// Package reconcile holds the books against the chains: what each address of ours holds, as its
// network tells, against what the stored transfers and transactions say it should hold.
//
// It promises:
//
//   - Each address that money came to or left is looked at once that is final. Every other address
//     is looked at once in Config.Every, as far as Config.Calls allow.
//   - A look never alarms over what moves: what is in flight, what a fork may still take away, and
//     what came while the balance was read make the address wait, with a reason.
//   - A difference is named after two readings, from all that is stored of the address. The host
//     hears of it by an event and by Config.Notify. With Config.Halt payouts of that currency halt
//     for that tenant; others go on.
//   - The halt ends by itself when the difference is gone, and by an operator's Lift, which says that
//     the difference is explained.
//   - What a look costs does not grow with what the address has ever done, nor with what others do that
//     are looked at in the same step, but for one look in a week at an address that pays nobody and gets
//     no change: that sums up everything that is stored of it.
package reconcile

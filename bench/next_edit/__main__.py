from bench.next_edit.measure import main

main()

from bench.report.command import main

main()

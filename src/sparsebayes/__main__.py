"""`python -m sparsebayes`: the library's main job on a built-in data set."""

from sparsebayes.app.demo import main

main()

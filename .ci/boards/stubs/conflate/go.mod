module github.com/zeitlinger/conflate

go 1.26.0
